// Package target is a target of NVMe over Fabrics with RDMA, on the verbs of package iwarp: hosts connect to it, those of
// Linux among them, and see back ends of package backend as namespaces.
//
// It is a thin layer. What a target knows and answers is in a model that has neither connections nor a clock; this package
// gives the model messages, and does what it returns: RDMA Reads and Writes, responses, and calls of back ends.
//
// # Goroutines
//
// Each connection is a queue. One goroutine takes its completions and passes messages to the model. It never waits for
// anything else: back ends are called by workers, of which each namespace has a bounded number, so that a back
// end that blocks stops neither the connections nor other namespaces. A second goroutine waits for the end of the connection.
//
// # Data
//
// Data that a host has in its memory is fetched with one RDMA Read, into a buffer that no one but this queue pair can use,
// and for which no peer has a right. No more Reads are posted than the peer answers at a time; others wait in a
// FIFO. Data for a host is copied once, from the back end into a buffer that is not used otherwise until the completion
// of the response behind the RDMA Write.
//
// # Memory
//
// The buffers in use are limited for each queue and for all, and so are those that are kept for later. A command for which there is none waits, for at most 5
// seconds, and is then answered with status 0x022, after which hosts try again.
//
// # Names are no proof
//
// The NQN by which a host calls itself is a name. Without Config.TLS with client certificates, or Config.Auth, anyone who
// knows the name of a host that is allowed can use its namespaces.
//
// The specifications are NVMe over Fabrics 1.1, NVM Express Base 2.0, NVM Command Set 1.0 and RDMA transport 1.0.
package target
