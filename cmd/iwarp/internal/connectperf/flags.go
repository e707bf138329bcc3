package connectperf

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// numbers, times and words are flags of several values, separated by commas.
type (
	numbers []int
	times   []time.Duration
	words   []string
)

func (l *numbers) String() string { return text(*l) }
func (l *times) String() string   { return text(*l) }
func (l *words) String() string   { return text(*l) }

// Type returns the type that the help shows.
func (l *numbers) Type() string { return "numbers" }

// Type returns the type that the help shows.
func (l *times) Type() string { return "times" }

// Type returns the type that the help shows.
func (l *words) Type() string { return "words" }

func (l *numbers) Set(s string) (err error) { *l, err = split(s, strconv.Atoi); return err }
func (l *times) Set(s string) (err error)   { *l, err = split(s, time.ParseDuration); return err }
func (l *words) Set(s string) error         { *l = strings.Split(s, ","); return nil }

func text[T any](l []T) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(l), "[]"), " ", ",")
}

func split[T any](s string, parse func(string) (T, error)) (l []T, err error) {
	for one := range strings.SplitSeq(s, ",") {
		v, err := parse(one)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	return l, nil
}
