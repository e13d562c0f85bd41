"""The gRPC service of feature_rpc: each lookup takes 18 ms in its backing table. Generic handlers, no generated code."""
import struct
import sys
import time
from concurrent import futures

import grpc


def lookup(request, context):
    time.sleep(0.018)
    number, = struct.unpack("<q", request)
    return struct.pack("<48f", *[(number * (k + 3)) % 71 / 71 for k in range(48)])


server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
handler = grpc.unary_unary_rpc_method_handler(lookup)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Features", {"Lookup": handler}),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(0)
