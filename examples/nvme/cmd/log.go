package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	"github.com/goiwarp/iwarp/examples/nvme/host"
)

// A page is a log page that can be printed.
type page struct {
	name  string
	lid   uint8
	n     int // octets
	print func(w io.Writer, log []byte) error
}

var pages = []page{
	{"smart", capsule.LogSMART, capsule.SMARTSize, printSMART},
	{"error", capsule.LogError, capsule.ErrorEntrySize, printErrors},
	{"firmware", capsule.LogFirmware, capsule.FirmwareSize, printFirmware},
	{"changed", capsule.LogChangedNamespaces, capsule.ChangedNamespacesSize, printChanged},
	{"effects", capsule.LogEffects, capsule.EffectsSize, printEffects},
}

func logFlags(fs *flag.FlagSet) action {
	var names []string
	for _, p := range pages {
		names = append(names, p.name)
	}
	i, name := &initiator{}, ""
	i.flags(fs, true)
	fs.StringVar(&name, "page", pages[0].name, "the `log` page: "+strings.Join(names, ", "))
	return func(ctx context.Context, s *streams, args []string) error {
		for _, p := range pages {
			if p.name == name {
				return i.with(p.read)(ctx, s, args)
			}
		}
		return usage("-page is %q, and not %s", name, strings.Join(names, ", "))
	}
}

// read reads a page and prints it.
func (p page) read(ctx context.Context, s *streams, c *host.Controller) error {
	log := make([]byte, p.n)
	if err := c.ReadLog(ctx, p.lid, log); err != nil {
		return err
	}
	return p.print(s.out, log)
}

func printSMART(w io.Writer, log []byte) error {
	l, err := capsule.ParseSMART(log)
	if err != nil {
		return err
	}
	for _, f := range []field{
		{"critical_warning", fmt.Sprintf("%#x", l.CriticalWarning)},
		{"temperature", fmt.Sprintf("%d K", l.Temperature)},
		{"available_spare", fmt.Sprintf("%d%%", l.Spare)},
		{"available_spare_threshold", fmt.Sprintf("%d%%", l.SpareThreshold)},
		{"percentage_used", fmt.Sprintf("%d%%", l.PercentageUsed)},
		{"data_units_read", l.UnitsRead},
		{"data_units_written", l.UnitsWritten},
		{"host_read_commands", l.Reads},
		{"host_write_commands", l.Writes},
		{"controller_busy_time", l.BusyMinutes},
		{"power_cycles", l.PowerCycles},
		{"power_on_hours", l.PowerOnHours},
		{"unsafe_shutdowns", l.UnsafeShutdowns},
		{"media_errors", l.MediaErrors},
	} {
		fmt.Fprintf(w, "%-26s: %v\n", f.name, f.value)
	}
	return nil
}

// printErrors prints the latest error.
func printErrors(w io.Writer, log []byte) error {
	e, err := capsule.ParseErrorEntry(log)
	if err != nil {
		return err
	}
	printFields(w, []field{
		{"error", e.Count},
		{"sqid", e.SQID},
		{"cmdid", fmt.Sprintf("%#x", e.CID)},
		{"status", e.Status},
		{"location", fmt.Sprintf("%#x", e.Location)},
		{"lba", fmt.Sprintf("%#x", e.LBA)},
		{"nsid", e.NSID},
	})
	return nil
}

func printFirmware(w io.Writer, log []byte) error {
	f, err := capsule.ParseFirmware(log)
	if err != nil {
		return err
	}
	printFields(w, []field{{"afi", fmt.Sprintf("%#x", f.AFI)}})
	for slot, revision := range f.FRS {
		if revision != "" {
			printFields(w, []field{{fmt.Sprintf("frs%d", slot+1), clean(revision)}})
		}
	}
	return nil
}

func printChanged(w io.Writer, log []byte) error {
	ids, all, err := capsule.ParseChangedNamespaces(nil, log)
	switch {
	case err != nil:
		return err
	case all:
		fmt.Fprintln(w, "more than 1024 namespaces have changed")
	default:
		fmt.Fprintf(w, "%d namespaces have changed\n", len(ids))
	}
	for _, nsid := range ids {
		fmt.Fprintln(w, nsid)
	}
	return nil
}

// printEffects prints the opcodes that the controller supports.
func printEffects(w io.Writer, log []byte) error {
	var e capsule.Effects
	if err := e.Parse(log); err != nil {
		return err
	}
	for _, set := range []struct {
		name string
		of   *[256]uint32
	}{{"admin", &e.Admin}, {"io", &e.IO}} {
		for op, effects := range set.of {
			if effects&capsule.EffectSupported != 0 {
				fmt.Fprintf(w, "%-5s %#02x : %#08x\n", set.name, op, effects)
			}
		}
	}
	return nil
}
