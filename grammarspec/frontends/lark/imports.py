"""Which files a ``.lark`` grammar may import, and their texts.

Lark itself looks for imports in more places than a grammar's author means: a grammar that is given as a text reads
files beside the running script, and a name that is found nowhere is tried in the working directory. A grammar's text
may come from anyone. So lark is given one :class:`Imports`, which answers every ``%import``: by lark's own grammars
(``common``, ``unicode``, ...), by the folders that the caller has named, and, for a grammar that was loaded from a
file, by the folder of that file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.lark.limits import check_text, without_long_gaps
from grammarspec.frontends.lark.text import GrammarText

__all__ = ["Imports"]


class Imports:
    """What answers the imports of one grammar; lark calls it as a loader.

    Attributes:
        source_name: the name under which lark loads the grammar itself; relative imports start from it.
    """

    def __init__(self, source: GrammarText, file: Path | None, import_paths: Sequence[Path]) -> None:
        """Make the answers for a grammar.

        Args:
            file: its file; ``None``: it is a text, which reads no files but those in ``import_paths``.
            import_paths: folders that are looked into before any other place.
        """
        from lark.load_grammar import PackageResource

        class TextItself(PackageResource):
            """A resource of no package: lark hands it back as the place that relative imports of a text start from."""

            __slots__ = ()

            def __str__(self) -> str:
                return "<string>"

        self._source = source
        self._import_paths = [str(path) for path in import_paths]
        self._folders = [path.resolve() for path in import_paths]
        if file is not None:
            self._folders += [file.parent.resolve(), file.resolve().parent]
        self.source_name: Any = TextItself("", "") if file is None else str(file)

    def __call__(self, base: Any, relative: str) -> tuple[Any, str]:
        """The place and the text of an imported grammar.

        Args:
            base: where a relative import starts, as lark has it: a folder, or a resource of a package; ``None`` for an
                absolute import.
            relative: the path of the grammar from there, or from any folder that is looked into.

        Raises:
            GrammarSyntaxError: there is no such grammar, it cannot be read, or its text is malformed.
            UnsupportedFeature: a text imports what stands beside it, or a link leads out of the folders.
            LimitExceeded: the grammar's terminals are too large.
        """
        beside = [base] if isinstance(base, str) and base not in self._import_paths else []
        for folder in [*self._import_paths, *beside]:
            file = Path(folder, relative)
            if file.is_file():
                return str(file), self._text(file)
        return self._bundled(base, relative)

    def _text(self, file: Path) -> str:
        """The text of a file, if it stands within the folders that may be read."""
        real = file.resolve()
        if not any(real.is_relative_to(folder) for folder in self._folders):
            raise UnsupportedFeature(
                f"the import {self._dotted(file.name)}: {file} is a link that leads out of its folder",
                self._place(file.name),
                hint="name the folder that it leads to in import_paths",
            )
        try:
            text = real.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = f"malformed grammar: the import {self._dotted(file.name)} cannot be read: {error}"
            raise GrammarSyntaxError(message, self._place(file.name)) from error
        check_text(GrammarText(text))
        return without_long_gaps(text)

    def _bundled(self, base: Any, relative: str) -> tuple[Any, str]:
        """One of lark's own grammars."""
        from lark.load_grammar import stdlib_loader

        if base == self.source_name:
            raise UnsupportedFeature(
                f"the relative import {self._dotted(relative)}: a text stands beside no files",
                self._place(relative),
                hint="gs.load reads the imports beside a file; import_paths names folders",
            )
        try:
            found: tuple[Any, str] = stdlib_loader(base, relative)
        except OSError:
            message = f"malformed grammar: there is no grammar {self._dotted(relative)} to import"
            raise GrammarSyntaxError(message, self._place(relative)) from None
        return found

    def _place(self, relative: str) -> str:
        """Where the grammar itself imports this, if it does."""
        return self._source.statement(rf"%import[ \t]+\.?{self._dotted(relative)}")

    @staticmethod
    def _dotted(relative: str) -> str:
        """A grammar's path as it is written in an import."""
        return ".".join(Path(relative).with_suffix("").parts)
