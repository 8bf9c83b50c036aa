# row: 73
# about: output without end, to be stopped
# control: none, it would not end
# limits: {"timeout_s": 20, "cpu_s": 20}
# request: {"on_output_limit": "stop"}
# status: output_limit
yes flood
