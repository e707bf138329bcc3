package connectperf

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/cmd/iwarp/internal/authmode"
)

// overlap compares 16 connections with one, with a peer that answers late. Without a delay the
// processors would limit 16 connections.
func (r *report) overlap() error {
	const ms = time.Millisecond
	for _, m := range []struct {
		delay time.Duration
		most  float64
	}{{1 * ms, 1.42}, {10 * ms, 1.15}, {30 * ms, 1.05}} {
		all, err := r.take(m.delay, 31, many(1, m.delay, authmode.Plain), many(16, m.delay, authmode.Plain))
		if err != nil {
			return err
		}
		r.Marks.Most(fmt.Sprintf("T(16) / T(1), peer delay %v", m.delay), all[1].ratio(all[0], totalOf), m.most, "")
	}
	return nil
}

// pipeline compares cm.DialMany with one set-up after the other.
func (r *report) pipeline() error {
	const n, delay = 1024, 10 * time.Millisecond
	serial := point{N: min(n, r.largest), Delay: delay, How: howSerial, Auth: authmode.Plain, Window: 1}
	all, err := r.take(delay, 3, serial, many(serial.N, delay, authmode.Plain))
	if err != nil {
		return err
	}
	r.Marks.Least("serial / DialMany, n = 1024, peer delay 10 ms", all[0].ratio(all[1], totalOf), 50)
	r.Marks.Most("DialMany, n = 1024, peer delay 10 ms, per connection",
		all[1].median(func(s *sample) float64 { return micros(s.each(s.Total)) }), 200, " us")
	return nil
}

// againstRaw compares cm.DialMany with plain TCP, and the end of connections with their set-up.
func (r *report) againstRaw() error {
	p := many(r.largest, 0, authmode.Plain)
	all, err := r.take(0, 5, p, p.raw())
	if err != nil {
		return err
	}
	r.Marks.Most("n = 4096 against raw: time", all[0].ratio(all[1], totalOf), 1.6, "")
	r.Marks.Most("n = 4096 against raw: CPU", all[0].ratio(all[1], cpuOf), 1.8, "")
	r.Marks.Most("DisconnectMany / DialMany, n = 4096", all[0].median(func(s *sample) float64 { return float64(s.Close) / float64(s.Total) }), 1, "")
	return nil
}

// againstEach compares cm.DialMany with a goroutine for each connection, in processes that have done
// nothing else.
func (r *report) againstEach() error {
	var pipe, each samples
	for range 3 {
		for _, m := range []struct {
			how  string
			into *samples
		}{{howMany, &pipe}, {howEach, &each}} {
			p := many(r.largest, 0, authmode.Plain)
			if p.How = m.how; m.how == howEach {
				p.Window = p.N
			}
			all, err := r.take(0, 1, p)
			if err != nil {
				return err
			}
			*m.into = append(*m.into, all[0]...)
		}
	}
	r.Marks.Most("n = 4096 against a goroutine for each: memory beyond the QPs", pipe.ratio(each, (*sample).passing), 0.3, "")
	r.Marks.Most("n = 4096: memory beyond the QPs", pipe.median((*sample).passing)/1e6, 12, " MB")
	r.Marks.Most("n = 4096 against a goroutine for each: CPU", pipe.ratio(each, cpuOf), 0.9, "")
	return nil
}

// authentication compares both modes with no authentication.
func (r *report) authentication() error {
	n := min(2048, r.largest)
	all, err := r.take(0, 9, many(n, 0, authmode.Plain), many(n, 0, authmode.A), many(n, 0, authmode.B))
	if err != nil {
		return err
	}
	for i, mode := range []string{"A", "B"} {
		r.Marks.Most("authentication, mode "+mode+": CPU of the client for a connection", all[i+1].less(all[0], clientOf), 5, " us")
		r.Marks.Most("authentication, mode "+mode+": CPU of the server for a connection", all[i+1].less(all[0], serverOf), 5, " us")
	}
	return nil
}

// flood compares the time of honest set-ups in mode B while nine of ten Requests are forged or
// replayed with their time without attacks.
func (r *report) flood() error {
	quiet := point{N: min(400, r.largest), How: howPaced, Auth: authmode.B, Window: 1}
	attacked := quiet
	attacked.Bad = 9
	all, err := r.take(0, 3, quiet, attacked)
	if err != nil {
		return err
	}
	r.Marks.Most("p99 of a set-up, nine of ten Requests forged or replayed, against none", all[1].ratio(all[0], p99Of), 3, "")
	return nil
}
