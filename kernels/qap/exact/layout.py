"""What the kernels of branch.cu and their launch share: what a child is made of, and what is found."""

from kernels.layout import parameter, struct

WIDEST = 32
"""Places of a line, a lane each."""
FOUND = 2 + WIDEST
"""Of a child: the room left (negative: done), its line, the leaders of that line."""

PROMISES = WIDEST * (WIDEST + 1)
"""Numbers ahead of a sweep's tile: what each leader promises."""
FEW = 20
"""Of the pairs of the first facility one in so many is to be excluded, or the others are not looked at."""

TASK = struct(
    "Task",
    """
    int parent                 // slot in the level above
    int slot                   // of the child, in its own level
    int i
    int j
    int room                   // the parent's
    """,
)

ASCEND_ARGS = parameter(
    "AscendArgs",
    """
    const int* parents         // slots of the level above
    int* arena                 // slots of this level
    const Task* tasks          // [children]
    int* found                 // [children, FOUND]
    int m                      // facilities left
    int sweeps                 // at most
    int patience               // a sweep that gains less than a share of the room over this is the last
    float sharp                // of the work expected below a line
    int group                  // locations whose asks an exclusion holds at once
    """,
)
CUDA = "\n".join([f"constexpr int FOUND = {FOUND}, PROMISES = {PROMISES}, FEW = {FEW};", TASK.text, ASCEND_ARGS.text])
