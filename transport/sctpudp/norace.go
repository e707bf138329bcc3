//go:build !race

package sctpudp

func raceSend()    {}
func raceReceive() {}
