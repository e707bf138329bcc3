package arch

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

// maxUp is the percentage of the arrows between the files of a package that may run back up. More need a record.
const maxUp = 15

// shape returns the numbers that testdata/shape.txt records. The program internal/arch/shape lists what makes them up.
func shape(t *testing.T) map[string]float64 {
	t.Helper()
	packages, err := measure.Load(root, ".")
	require.NoError(t, err)
	now := make(map[string]float64)
	for _, p := range packages {
		order := measure.BestOrder(p.Arrows(), measure.Unit)
		if p.Path != module {
			if order.Percent() >= maxUp {
				now[p.Below()+": percent of arrows up"] = order.Percent()
			}
			continue
		}
		methods, _ := p.Methods("QP")
		now["root: arrows up"] = float64(order.UpN)
		now["root: percent of arrows up"] = order.Percent()
		now["root: percent of uses up"] = measure.BestOrder(p.Arrows(), (*measure.Arrow).Weight).Percent()
		now["root: percent of arrows up, with types and data"] = measure.BestOrder(measure.WithNames(p.Arrows()), measure.Unit).Percent()
		now["root: files that lead to one another"] = float64(order.Largest)
		now["root: methods of QP"] = float64(methods)
	}
	require.NotEmpty(t, now)
	files := tree(t)
	// A few lines more or less do not matter.
	now["root: hundreds of lines of code"] = math.Ceil(float64(measure.Code(files)["."]) / 100)
	now["root: files of more than 400 lines"] = float64(len(measure.Longer(files, ".", 400)))

	c, err := measure.QP.Shape(packages)
	require.NoError(t, err)
	now["connection: atomics of the engine"] = float64(len(measure.Engine(c.Atomics)))
	now["connection: atomics"] = float64(len(c.Atomics))
	now["connection: mutexes of the engine"] = float64(len(measure.Engine(c.Mutexes)))
	now["connection: mutexes"] = float64(len(c.Mutexes))
	return now
}

func TestShapeGetsNoWorse(t *testing.T) {
	now := shape(t)
	holdRecord(t, "shape.txt", func(*record) map[string]float64 { return now })
}
