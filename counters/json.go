package counters

import "encoding/json"

// MarshalJSON returns an object of the counts that are not 0, by the name of the End.
func (e Ended) MarshalJSON() ([]byte, error) { return byName(e[:], endNames[:]) }

// UnmarshalJSON is the reverse of MarshalJSON. It ignores unknown names.
func (e *Ended) UnmarshalJSON(b []byte) error { return fromNames(b, e[:], endNames[:]) }

// MarshalJSON returns an object of the counts that are not 0, by the name of the Cause.
func (s Setups) MarshalJSON() ([]byte, error) { return byName(s[:], causeNames[:]) }

// UnmarshalJSON is the reverse of MarshalJSON. It ignores unknown names.
func (s *Setups) UnmarshalJSON(b []byte) error { return fromNames(b, s[:], causeNames[:]) }

func byName(counts []uint64, names []string) ([]byte, error) {
	m := make(map[string]uint64)
	for i, n := range counts {
		if n > 0 {
			m[names[i]] = n
		}
	}
	return json.Marshal(m)
}

func fromNames(b []byte, counts []uint64, names []string) error {
	var m map[string]uint64
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	for i, name := range names {
		counts[i] = m[name]
	}
	return nil
}
