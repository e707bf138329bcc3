// Package monitor shows the activity of a running program's connections, as a page for browsers and as JSON.
//
// A program creates a [Handler] for its RNICs, and mounts it in its HTTP server:
//
//	h := monitor.NewHandler(rnic)
//	http.Handle("/iwarp/", http.StripPrefix("/iwarp", h))
//
// It serves the page at /, and a [State] at /state.json, which `iwarp top` reads. It has no cost, and does not query the RNICs, while
// no client requests the page or a State. [Compare] turns two States into what is shown: rates, quantiles of latencies, errors, and
// the sorted connections.
//
// The page shows addresses and identities of peers. It shows no secrets and no payload, and cannot change anything. The
// Handler has no access control: mount it where only those who may see the page can reach it.
package monitor
