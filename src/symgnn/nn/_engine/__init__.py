"""How updates are computed fast. The mathematics is in the files above this folder.

| file | content |
|---|---|
| engine.py | `Engine`: the interface to the mathematics |
| unchunked_engine.py | updates with all rows in memory at once; decides on tiles |
| chunked_engine.py | updates with some angles and edges in memory at once |
| force_pass.py, force_layers.py | updates where only forces are asked for |
| plan.py | everything about an update that does not depend on the graph; made once |
| first_half.py | the first linear map, per input on its own domain, then gathered and added |
| values.py | values whose last linear map is deferred to an aggregation or the next update |
| parts.py | values of which only a part is in memory at once |
| rows.py | gathering and summing rows between domains |
| chunks.py | computation in parts that are recomputed in the backward pass |
| tiles.py | an angle update in pieces that fit into the cache; tile_passes.py computes them |
| grid_products.py | sums over angles as matrix products |
| moments.py | sums over angles of product form; star_sums.py and ray_sums.py compute them |
| narrow_sums.py | the same where nodes have few numbers, or all the same |
| edge_stars.py | products of edges at a node |
| sparse_dropout.py | dropout that draws the places of the zeros |
| policy.py | the sizes from which tiles are used |
| torch_private.py | all uses of non-public parts of PyTorch |
"""
