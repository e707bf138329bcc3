// Package monitor shows what the connections of a running program do, as a page for browsers and as JSON.
//
// A [Handler] is given the RNICs of a program, and is mounted in its HTTP server:
//
//	h := monitor.NewHandler(rnic)
//	http.Handle("/iwarp/", http.StripPrefix("/iwarp", h))
//
// It has the page at /, and a [State] at /state.json, which `iwarp top` reads. Nothing is counted for it, and nothing is asked of
// the RNICs while no one looks. [Compare] makes of two States what is shown: rates, quantiles of latencies, errors, and the
// connections in an order.
//
// The page shows addresses and identities of peers. It has no secrets and no payload, and nothing can be changed by it. The
// Handler has no access control: mount it where those who may see that can reach it, and others cannot.
package monitor
