"""What the command `symgnn` can do: a module each, with `add` (its options) and `run`.

They are imported whenever the command is, so each imports what it needs in `run`.
"""

from symgnn.commands import audit, demo, reproduce

#: In the order of `symgnn --help`.
COMMANDS = (demo, reproduce, audit)
