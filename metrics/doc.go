// Package metrics exports what RNICs count to Prometheus.
//
// A [Collector] is given the RNICs of a program, and is registered once:
//
//	c := metrics.NewCollector(rnic)
//	prometheus.MustRegister(c)
//	http.Handle("/metrics", promhttp.Handler())
//
// Objects that belong to no RNIC are added with a name: [Collector.AddAuth], [Collector.AddServer], [Collector.AddClient],
// [Collector.AddSolicitor] and [Collector.AddBacking]. So are queues that QPs share, of which one wants to know how full they
// are: [Collector.AddCQ] and [Collector.AddSRQ]. They are kept until [Collector.Remove]. Nothing is counted for the Collector: it
// asks when it is scraped. The latencies of operations need iwarp.Config.Latency.
//
// The names of the metrics and of their labels are stable: docs/metrics.md lists them. The values of labels are bounded whatever
// peers send. There are no addresses and no identities of peers, and codes of Terminates that no RFC has are "other". Those that
// the program chooses are the names above, and the types of connections that it wraps (label path).
//
// The file dashboard.json is a dashboard of Grafana for them.
package metrics
