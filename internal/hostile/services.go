package main

import (
	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/examples/nvme/backend"
	"github.com/goiwarp/iwarp/examples/nvme/target"
	"github.com/goiwarp/iwarp/internal/hostile/attack"
	"github.com/goiwarp/iwarp/rma"
)

// subsystem is the NVMe subsystem that attackers may use.
const subsystem = "nqn.2026-11.org.example:target"

// serve listens for all layers.
func (v *victim) serve() error {
	for _, serve := range []func() error{v.servePlain, v.serveAuth, v.serveRMA, v.serveNVMe} {
		if err := serve(); err != nil {
			return err
		}
	}
	return nil
}

func (v *victim) servePlain() error {
	err := v.listens("tcp", nil, v.plain.handle, attack.TCP, attack.MPA, attack.FPDU, attack.DDP, attack.RDMAP, attack.Commit)
	if err != nil {
		return err
	}
	return v.listens("sctp+udp", nil, v.plain.handle, attack.SCTP)
}

// serveAuth serves those that have a key, which no attacker has.
func (v *victim) serveAuth() error {
	ring, err := cm.NewRing(cm.Key{ID: 1, Secret: []byte("thirty-two octets, random ones !"), Derive: true})
	if err != nil {
		return err
	}
	auth, err := cm.New(&cm.Config{Ring: ring})
	if err != nil {
		return err
	}
	v.records = append(v.records, func() int { return len(auth.AccessLog()) })
	return v.listens("tcp", &iwarp.ListenConfig{Auth: auth}, v.plain.handle, attack.CM)
}

// serveRMA serves a region without keys, as for peers that are trusted: attackers get as far as they can.
func (v *victim) serveRMA() error {
	pd, err := v.rnic.AllocPD()
	if err != nil {
		return err
	}
	server := rma.NewServer(&rma.ServerConfig{PD: pd, Insecure: true})
	v.records = append(v.records, func() int { return len(server.AuditLog()) })
	if _, err := server.Register(1, rma.NewMemory(make([]byte, 1<<16)), nil); err != nil {
		return err
	}
	return v.listens("tcp", nil, func(cr *iwarp.ConnRequest) {
		cfg := iwarp.QPConfig{PD: pd}
		if rma.Prepare(v.rnic, &cfg, 64, 0) != nil {
			return
		}
		qp, err := cr.Accept(v.ctx, &cfg)
		if err != nil {
			_ = cfg.SendCQ.Close()
			return
		}
		_ = server.Serve(v.ctx, qp)
	}, attack.RMA)
}

// serveNVMe serves a namespace in memory.
func (v *victim) serveNVMe() error {
	t, err := target.New(&target.Config{RNIC: v.rnic, Limits: target.Limits{Memory: 16 << 20}})
	if err != nil {
		return err
	}
	v.closers = append(v.closers, t.Close)
	disk, err := backend.NewMemory(backend.MemoryConfig{Size: 4 << 20, BlockSize: 4096})
	if err != nil {
		return err
	}
	v.friends.also(t.Event)
	if err := t.AddSubsystem(target.Subsystem{NQN: subsystem}); err != nil {
		return err
	}
	if err := t.AddNamespace(subsystem, target.Namespace{NSID: 1, Backend: disk}); err != nil {
		return err
	}
	return v.listens("tcp", nil, t.Handle, attack.NVMe)
}
