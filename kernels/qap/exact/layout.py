"""What the kernel of branch.cu and its launch share: what a child is made of, and what is found."""

from kernels.layout import parameter, struct

WIDEST = 32
"""Places of a line, a lane each."""
FOUND = 2 + WIDEST
"""Of a child: the room left (negative: done), its line, the leaders of that line."""

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
CUDA = "\n".join([f"constexpr int FOUND = {FOUND};", TASK.text, ASCEND_ARGS.text])
