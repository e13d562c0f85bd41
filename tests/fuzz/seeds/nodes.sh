cp "$root/docs/examples/nodes.toml" .
