"""Keeps a server of vLLM with grammarspec inside busy, and watches its memory: run by the Python of vLLM's environment.

``python -m tests.integrations.vllm_soak MODEL_DIRECTORY SECONDS [CLIENTS [SCHEMAS]]``. Clients, eight if not given, ask
for JSON of 200 schemas or as many as given, and for what patterns, choices and grammars allow. One request of a hundred
is hostile (it hits a limit before or while it is answered), one of a hundred is wrong, and one of a hundred is left by
its client in the middle. Errors are only to come where they are due, finished texts are judged, and the memory of each
process of the server is told every ten seconds: one line of JSON at the end.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai

from tests.integrations.vllm_checks import GROWING, HOSTILE, REFUSED, Asker, logged, matching, server
from tests.integrations.vllm_figures import schema_of


def memory(session: int) -> dict[str, int]:
    """Resident megabytes of each process of a session, by its name."""
    found: dict[str, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            if int(rest.split()[3]) == session:
                pages = int((folder / "statm").read_text().split()[1])
                found[f"{name} {folder.name}"] = pages * os.sysconf("SC_PAGESIZE") >> 20
        except (OSError, IndexError):
            continue
    return found


def one(asker: Asker, number: int, schemas: int) -> str:
    """One request; what became of it."""
    chance = random.Random(number)
    kind, most = chance.random(), chance.randint(4, 40)
    if kind < 0.01:
        what: dict[str, Any] = chance.choice([{"json": GROWING}, *HOSTILE.values()])
        try:
            asker.structured("Hello", lambda text: None, max_tokens=most, **what)
        except (openai.BadRequestError, openai.InternalServerError):
            return "hostile, refused or ended"
        return "hostile, answered"
    if kind < 0.02:
        said, what = chance.choice(REFUSED[:-1])
        asker.refused(said, extra={"structured_outputs": what})
        return "wrong, refused"
    if kind < 0.03:
        stream = asker.client.chat.completions.create(
            model="smollm2",
            messages=[{"role": "user", "content": "Some JSON."}],
            max_tokens=200,
            stream=True,
            extra_body={"structured_outputs": {"json": schema_of(chance.randrange(schemas))}},
        )
        for _ in zip(range(3), stream, strict=False):
            pass
        stream.close()
        return "left"
    if kind < 0.2:
        digits = chance.randint(1, 8)
        asker.structured("A number.", matching(f"[0-9]{{{digits}}}"), max_tokens=most, regex=f"[0-9]{{{digits}}}")
        return "regex"
    if kind < 0.3:
        choice = [f"text {chance.randrange(1000)}" for _ in range(5)]
        asker.structured("Say it.", matching("|".join(choice)), max_tokens=most, choice=choice)
        return "choice"
    if kind < 0.4:
        words = chance.randint(1, 3)
        grammar = f'root ::= "x" (" " [a-z]+){{{words}}} "."'
        asker.structured("Words.", matching(f"x( [a-z]+){{{words}}}\\."), max_tokens=most, grammar=grammar)
        return "grammar"
    asker.schema(f"Request {number}: some JSON.", schema_of(chance.randrange(schemas)), max_tokens=most)
    return "json"


def main(model: str, seconds: float, clients: int = 8, schemas: int = 200) -> None:
    folder = Path(os.environ.get("TMPDIR", "/tmp"))
    tight = {"GRAMMARSPEC_VLLM_MAX_CALL_STEPS": "200000", "GRAMMARSPEC_VLLM_CACHE_BYTES": str(64 << 20)}
    outcomes: Counter[str] = Counter()
    report: dict[str, Any] = {"memory": {}}
    log = folder / "vllm-soak.log"
    # No prompt is read in parts: on a CPU, that ends vLLM 0.32 if the request has a seed, whatever the backend.
    at_once = ("--max-num-seqs", str(max(clients, 32)), "--max-num-batched-tokens", str(1024 * max(clients, 8)))
    with server(model, log, *at_once, **tight) as (client, session), ThreadPoolExecutor(clients) as pool:
        asker, began = Asker(client), time.monotonic()

        def work(client_number: int) -> int:
            number = client_number
            while time.monotonic() - began < seconds:
                outcomes[one(asker, number, schemas)] += 1
                number += clients
            return number

        working = [pool.submit(work, i) for i in range(clients)]
        while not all(one_client.done() for one_client in working):
            time.sleep(min(10, seconds / 10))
            report["memory"][round(time.monotonic() - began)] = memory(session)
            print(dict(outcomes), memory(session), file=sys.stderr, flush=True)
        for one_client in working:
            one_client.result()
        assert asker.schema("Some JSON.", schema_of(0))
        report |= {"requests": sum(outcomes.values()), "outcomes": outcomes}
        report |= {"finished": asker.finished, "cut by max_tokens": asker.cut}
    text = logged(log)
    report["tokens refused"] = text.count("grammar rejected tokens")
    assert "Traceback" not in text, text[-5000:]
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:]))
