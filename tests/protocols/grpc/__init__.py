"""gRPC over real sockets: the server is a process of its own, the client is grpcio in the test's."""
