// Package target is a target of NVMe over Fabrics with RDMA, on the verbs of package iwarp. Hosts, including those of Linux,
// connect to it, and see back ends of package backend as namespaces.
//
// It is a thin layer. A model without connections and clock holds what a target knows, and decides what it answers. This
// package passes messages to the model, and performs the actions that it returns: RDMA Reads and Writes, responses, and calls of back ends.
//
// # Goroutines
//
// Each connection is a queue. One goroutine takes its completions and passes messages to the model. It never waits for
// anything else: workers, of which each namespace has a bounded number, call the back ends, so that a back end that
// blocks stops neither the connections nor other namespaces. A second goroutine waits for the end of the connection.
//
// # Data
//
// Data in the memory of a host are fetched with one RDMA Read, into a buffer that only this queue pair can use, and to
// which no peer has access. No more Reads are posted than the peer answers at a time; others wait in a FIFO. Data for a
// host are copied once, from the back end into a buffer that is not used for anything else until the response after
// the RDMA Write has completed.
//
// # Memory
//
// The buffers in use are limited for each queue and for all queues, and so are the buffers that are kept for later. A command
// for which there is no buffer waits for at most 5 seconds, and is then answered with status 0x022, after which hosts try again.
//
// # Names prove nothing
//
// The NQN of a host is only a name. Without Config.TLS with client certificates, or Config.Auth, anyone who knows the name of
// an allowed host can use its namespaces.
//
// The specifications are NVMe over Fabrics 1.1, NVM Express Base 2.0, NVM Command Set 1.0 and RDMA transport 1.0.
package target
