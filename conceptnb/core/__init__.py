"""What the paper defines: concepts, environments, distributions, mixing, scores.

Each module imports only those before it:

- `validation`, `files`, `table_files`: arguments, files and tables that are checked;
- `concepts`, `certificate`, `diversity`, `design`: concepts, and environments diverse enough;
- `distributions`, `conditioning`, `conditioning_distributions`: conditioning, three ways;
- `causal`: a small causal model, for comparison;
- `planner`: the smallest designs that Theorem 1 covers;
- `mixing`, `problems`, `example_data`: observations, and data sets with all environments;
- `scores`, `disentanglement`: how well learned valuations match the true ones;
- `muon`, `sentence_bert`: what two of the rooms above need of torch, loaded by them alone.
"""
