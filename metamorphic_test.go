package iwarp_test

import (
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/metamorphic/program"
	"github.com/goiwarp/iwarp/internal/recordpipe"
)

// TestVERBS_49_70_ARCH_28_ProgramsOverALayerThatReorders: over a layer that hands segments up in another order, random
// programs end as their model says and as over the pipe. No network of RNIC.Dial reorders as much. internal/metamorphic
// runs them over those networks.
func TestVERBS_49_70_ARCH_28_ProgramsOverALayerThatReorders(t *testing.T) {
	r := program.Runner{Records: func(cfg program.Config, _ int, rnics [2]*iwarp.RNIC, qcs [2]*iwarp.QPConfig) (qps [2]*iwarp.QP, err error) {
		a, b := recordpipe.New(recordpipe.Options{Seed: cfg.Shuffle, Window: 16, MaxULPDU: cfg.ULPDU})
		qps[0], qps[1] = iwarp.ConnectOver(t, a, b, rnics[0], qcs[0], rnics[1], qcs[1])
		return qps, nil
	}}
	for seed := range uint64(200) {
		p := program.FromSeed(seed, program.Pipe, program.Records)
		if f := r.Run(p, p.Configs); f != nil {
			p.Configs = f.Configs
			t.Fatalf("seed %d: %v\n\n%v\n%s", seed, f, p, program.Draw(p.Conns, f.Trace))
		}
	}
}
