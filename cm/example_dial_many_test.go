package cm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// serves answers every request at a new address, with the PD of this side.
func serves(ctx context.Context, rnic *iwarp.RNIC, pd *iwarp.PD) (addr string) {
	l, err := rnic.Listen(ctx, "pipe", "", nil)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			cr, err := l.Accept(ctx)
			if err != nil {
				return
			}
			go func() { _, _ = cr.Accept(ctx, &iwarp.QPConfig{PD: pd}) }()
		}
	}()
	return l.Addr().String()
}

// opens makes an RNIC and a PD.
func opens() (*iwarp.RNIC, *iwarp.PD) {
	rnic, err := iwarp.Open(nil)
	if err != nil {
		log.Fatal(err)
	}
	pd, err := rnic.AllocPD()
	if err != nil {
		log.Fatal(err)
	}
	return rnic, pd
}

func ExampleDialMany() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, serverPD := opens()
	defer func() { _ = server.Close() }()
	addr := serves(ctx, server, serverPD)

	client, pd := opens()
	defer func() { _ = client.Close() }()
	targets := func(yield func(cm.Target) bool) {
		for i := range 100 {
			t := cm.Target{Network: "pipe", Addr: addr, Tag: i}
			if i == 42 {
				t.Addr = "somewhere else"
			}
			if !yield(t) {
				return
			}
		}
	}
	established := 0
	opts := &cm.Options{RNIC: client, QP: &iwarp.QPConfig{PD: pd}, Retry: cm.DefaultRetry}
	for t, r := range cm.DialMany(ctx, targets, opts) {
		if r.Err != nil {
			fmt.Println("target", t.Tag, "fails in stage", r.Stage)
			continue
		}
		established++ // r.QP belongs to this loop
	}
	fmt.Println(established, "QPs")
	// Output:
	// target 42 fails in stage dial
	// 99 QPs
}

func ExampleDisconnectMany() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, serverPD := opens()
	defer func() { _ = server.Close() }()
	addr := serves(ctx, server, serverPD)

	client, pd := opens()
	defer func() { _ = client.Close() }()
	targets := func(yield func(cm.Target) bool) {
		for range 10 {
			if !yield(cm.Target{Network: "pipe", Addr: addr}) {
				return
			}
		}
	}
	// One iterator feeds the other.
	qps := func(yield func(*iwarp.QP) bool) {
		for _, r := range cm.DialMany(ctx, targets, &cm.Options{RNIC: client, QP: &iwarp.QPConfig{PD: pd}}) {
			if r.Err == nil && !yield(r.QP) {
				return
			}
		}
	}
	n := 0
	for qp, err := range cm.DisconnectMany(ctx, qps, &cm.DisconnectOptions{Timeout: 1}) {
		<-qp.Done() // whether it has ended gracefully or, as err tells, was aborted
		_ = err
		n++
	}
	fmt.Println(n, "QPs have ended")
	// Output: 10 QPs have ended
}

func ExamplePool() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server, serverPD := opens()
	defer func() { _ = server.Close() }()
	addr := serves(ctx, server, serverPD)

	client, pd := opens()
	defer func() { _ = client.Close() }()
	pool, err := cm.NewPool(&cm.PoolConfig{RNIC: client, QP: &iwarp.QPConfig{PD: pd}, Idle: cm.DefaultIdle})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	var before *iwarp.QP
	for range 3 {
		lease, err := pool.Get(ctx, "pipe", addr) // set up once
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.QP().State(), "the same:", lease.QP() == before)
		before = lease.QP()
		lease.Release(lease.QP().State() != iwarp.StateRTS)
	}
	for _, h := range pool.Health() {
		fmt.Println(h.QPs, "QP,", h.Leased, "leased")
	}
	// Output:
	// RTS the same: false
	// RTS the same: true
	// RTS the same: true
	// 1 QP, 0 leased
}
