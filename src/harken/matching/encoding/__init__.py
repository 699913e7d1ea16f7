"""Events in numbers: columns go in, the codes and labels of their values come out, block by block.

`matcher` is what all algorithms that match such numbers share: changing, saving, rescuing, and a workspace for
each thread.
"""
