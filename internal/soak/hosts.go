package main

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/metamorphic/program"
)

// The limits of the RNICs of a run. At its end, all of each resource are allocated.
const (
	stagsPerQP = 256 // a program uses fewer
	mostPDs    = mostQPs
	mostCQs    = 1024
	mostSRQs   = mostQPs
)

// The bounds of -qps. The minimum suffices for the shared region and a program with three connections.
const (
	minQPs  = sharedQPs + 6
	mostQPs = 256
)

// A hostPair holds the two hosts of jobs.
type hostPair [2]*program.Host

// openHosts opens two RNICs that allow qps queue pairs together.
func openHosts(plain bool, qps int, d *datagrams) (pair *hostPair, err error) {
	cfg := iwarp.Config{PlainIO: plain, ListenPacket: d.listen}
	cfg.Limits = iwarp.Limits{MaxQP: qps / 2, MaxMR: qps * stagsPerQP, MaxPD: mostPDs, MaxCQ: mostCQs, MaxSRQ: mostSRQs}
	pair = new(hostPair)
	for i := range pair {
		if pair[i], err = program.NewHost(&cfg); err != nil {
			return nil, err
		}
	}
	return pair, nil
}

// rnics returns the RNICs of the two hosts.
func (p *hostPair) rnics() [2]*iwarp.RNIC { return [2]*iwarp.RNIC{p[0].RNIC, p[1].RNIC} }

// left returns an error if limited resources of a host are still in use: it must be possible to allocate all of each.
func left(r *iwarp.RNIC) error {
	pds, err := takeAll(mostPDs, "PDs", r.AllocPD)
	defer closeAll(pds)
	if len(pds) == 0 {
		return err
	}
	mws, err2 := takeAll(r.Limits().MaxMR, "STags", pds[0].AllocMW)
	closeAll(mws)
	cqs, err3 := takeAll(mostCQs, "CQs", func() (*iwarp.CQ, error) { return r.CreateCQ(1) })
	closeAll(cqs)
	srqs, err4 := takeAll(mostSRQs, "SRQs", func() (*iwarp.SRQ, error) { return pds[0].CreateSRQ(1) })
	closeAll(srqs)
	return errors.Join(err, err2, err3, err4)
}

// takeAll takes resources until a limit is reached.
func takeAll[T any](limit int, what string, take func() (T, error)) (all []T, err error) {
	for err == nil {
		var one T
		if one, err = take(); err == nil {
			all = append(all, one)
		}
	}
	switch {
	case !errors.Is(err, iwarp.ErrLimit):
		return all, err
	case len(all) != limit:
		return all, fmt.Errorf("%d %s are left", limit-len(all), what)
	}
	return all, nil
}

// closeAll closes what takeAll has taken.
func closeAll[T interface{ Close() error }](all []T) {
	for i := range all {
		_ = all[len(all)-1-i].Close() // the STags end before their PD
	}
}
