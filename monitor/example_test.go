package monitor_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/monitor"
)

// A program mounts the Handler in its HTTP server. Another program reads States; two States make a View.
func ExampleNewHandler() {
	rnic, err := iwarp.Open(&iwarp.Config{Latency: true})
	if err != nil {
		log.Fatal(err)
	}
	defer rnic.Close()

	mux := http.NewServeMux()
	mux.Handle("/iwarp/", http.StripPrefix("/iwarp", monitor.NewHandler(rnic)))
	server := httptest.NewServer(mux)
	defer server.Close()

	answer, err := http.Get(server.URL + "/iwarp/state.json")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	var state monitor.State
	if err := json.NewDecoder(answer.Body).Decode(&state); err != nil {
		log.Fatal(err)
	}
	view := monitor.Compare(nil, &state, monitor.Options{Sort: monitor.ByRTT, Limit: 10})
	fmt.Println(view.RNICs, "RNIC,", view.QPs, "connections")
	// Output:
	// 1 RNIC, 0 connections
}
