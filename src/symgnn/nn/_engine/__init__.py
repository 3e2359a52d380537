"""How updates are computed fast. The mathematics is in the files above this folder.

| file | content |
|---|---|
| engine.py | `Engine`: the interface to the mathematics |
| whole.py | updates with all rows in memory at once; decides on tiles |
| in_parts.py | updates with some angles and edges in memory at once |
| plan.py | what is known of an update before any graph: made once, in its `__init__` |
| first_half.py | inputs mapped where they live, and added on the way up |
| values.py | values whose last map waits for a reduction or folds into the next update |
| parts.py | values of which only a part is in memory at once |
| rows.py | moving rows between domains |
| chunks.py | computing something large part by part, and again in the backward pass |
| tiles.py | an angle update in pieces that stay in the processor's cache |
| grid_products.py | sums over angles as products of matrices |
| policy.py | sizes from which on tiles are used |
| torch_private.py | everything that is not public in PyTorch |
"""
