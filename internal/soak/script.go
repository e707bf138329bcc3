package main

import (
	"math/rand/v2"

	"github.com/goiwarp/iwarp/internal/damage"
	"github.com/goiwarp/iwarp/internal/metamorphic/program"
)

// A job is a program and the network that it runs over.
type job struct {
	seed    uint64
	program program.Program
	config  program.Config
}

// slots returns how many queue pairs a job needs.
func (j *job) slots() int { return 2 * j.program.Conns }

// cuts are the values of how of Cut, of which Generate draws only the first two.
var cuts = []string{damage.Reset, damage.FIN, damage.Corrupt, damage.Stall, damage.HalfClose, damage.Vanish}

// draw makes the job for a seed.
func draw(seed uint64, networks []string) job {
	r := rand.New(rand.NewPCG(seed, 2))
	all := program.DrawConfigs(r, networks...)
	j := job{seed: seed, program: program.Generate(rand.New(rand.NewPCG(seed, 0))), config: all[r.IntN(len(all))]}
	j.config.Shuffle = 0 // the sockets are those of the hosts, which delay datagrams, too
	for i := range j.program.Ops {
		o := &j.program.Ops[i]
		if o.Verb != program.Cut {
			continue
		}
		o.How = cuts[r.IntN(len(cuts))]
		if o.How == damage.Corrupt {
			j.config.NoCRC = false
		}
	}
	j.program.Configs = []program.Config{j.config}
	return j
}
