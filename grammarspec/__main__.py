"""``python -m grammarspec``."""

import sys

from grammarspec.cli import main

sys.exit(main())
