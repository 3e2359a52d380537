"""The subcommands of `symgnn`: a module each, with `add` (its options) and `run`.

They are imported whenever the command is, so each imports what it needs in `run`.
"""

from symgnn.commands import (
    audit,
    bench,
    data,
    demo,
    discover,
    evaluate,
    explore,
    export,
    predict,
    reproduce,
    train,
)

#: In the order of `symgnn --help`.
COMMANDS = (
    demo,
    explore,
    audit,
    discover,
    data,
    train,
    evaluate,
    predict,
    export,
    reproduce,
    bench,
)
