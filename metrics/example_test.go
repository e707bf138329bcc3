package metrics_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/metrics"
)

// A program registers a Collector of its RNICs once. Objects with a name of their own, such as a Solicitor, are added.
func ExampleNewCollector() {
	rnic, err := iwarp.Open(&iwarp.Config{Latency: true})
	if err != nil {
		log.Fatal(err)
	}
	defer rnic.Close()

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(rnic))

	families, err := registry.Gather() // promhttp.HandlerFor(registry, ...) calls it for each request
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if strings.Contains(f.GetName(), "overflows") {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output:
	// iwarp_cq_overflows_total 0
}
