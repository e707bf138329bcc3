// Package metrics exports the counts of RNICs to Prometheus.
//
// A program creates a [Collector] for its RNICs, and registers it once:
//
//	c := metrics.NewCollector(rnic)
//	prometheus.MustRegister(c)
//	http.Handle("/metrics", promhttp.Handler())
//
// Objects that belong to no RNIC are added with a name: [Collector.AddAuth], [Collector.AddServer], [Collector.AddClient],
// [Collector.AddSolicitor] and [Collector.AddBacking]. Queues that QPs share are added by [Collector.AddCQ] and
// [Collector.AddSRQ], to monitor how full they are. All of them stay until [Collector.Remove]. The Collector adds no cost between
// scrapes: it reads the counts when it is scraped. The latencies of operations need iwarp.Config.Latency.
//
// The names of the metrics and of their labels are stable: docs/metrics.md lists them. The number of label values is bounded, whatever
// peers send. No label has an address or an identity of a peer, and Terminate codes that no RFC defines become "other". The program
// itself determines the names above, and the types of connections that it wraps (label path).
//
// The file dashboard.json is a Grafana dashboard for these metrics.
package metrics
