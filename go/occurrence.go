package leasehold

import (
	"time"
	"unicode/utf8"

	"code.invalid/leasehold/go/internal/core"
)

// offsetsBack is how far back the protocol wants to know the offsets of a zone.
const offsetsBack = 48 * time.Hour

// plan is the occurrence of a job that the settings of a run mean now: its resource, and how long its completion stands.
func (c *Client) plan(name, key string, set *settings) (plan core.RunPlan, err error) {
	of, err := set.occurrence(key)
	if err != nil {
		return plan, err
	}
	for _, text := range []*string{&name, of.Key, of.At, of.Tz, of.Cron} {
		if text != nil && !utf8.ValidString(*text) {
			return plan, configError("the name, the key and the times of a run have to be UTF-8: %q", *text)
		}
	}
	now := c.machine.now().UnixMs
	offsets, err := zoneOffsets(of.Tz, now)
	if err != nil {
		return plan, err
	}
	err = c.machine.turn(func() ([]core.Input, error) {
		plan, err = c.machine.core.RunsPlanRun(name, of, now, offsets, len(c.machine.links) > 1, set.evenIfDone)
		return nil, err
	})
	return plan, err
}

// occurrence are the settings that say which part of a job is done once. An empty key is none if others name the occurrence: a variable
// that was not set must not stand for the job as a whole.
func (s *settings) occurrence(key string) (of core.Occurrence, err error) {
	of = core.Occurrence{At: s.at, Tz: s.tz, Cron: s.cron}
	for _, length := range []struct {
		name  string
		given *time.Duration
		taken **uint64
	}{
		{"every", s.every, &of.EveryMs}, {"offset", s.offset, &of.OffsetMs}, {"cooldown", s.cooldown, &of.CooldownMs}, {"keep", s.keep, &of.KeepMs},
	} {
		if *length.taken, err = whole(length.name, length.given); err != nil {
			return of, err
		}
	}
	named := s.every != nil || s.offset != nil || s.at != nil || s.tz != nil || s.cron != nil || s.cooldown != nil
	if key != "" || !named {
		of.Key = &key
	}
	return of, nil
}

// zoneOffsets are the offsets of a zone that counted lately; none without a zone.
func zoneOffsets(zone *string, unixMs uint64) ([]core.ZoneOffset, error) {
	if zone == nil {
		return nil, nil
	}
	place, err := time.LoadLocation(*zone)
	// To Go, these two are zones, which differ between machines.
	if err != nil || *zone == "" || *zone == "Local" {
		return nil, configError("%q is no zone that this machine knows: give its name in the IANA database, such as Europe/Berlin or UTC; "+
			"for a machine that has no zones, import time/tzdata", *zone)
	}
	now := time.UnixMilli(int64(unixMs))
	var offsets []core.ZoneOffset
	for at := time.UnixMilli(max(now.UnixMilli()-offsetsBack.Milliseconds(), 0)).In(place); ; {
		_, ahead := at.Zone()
		since := at.UnixMilli()
		shown := max(since+int64(ahead)*1000, 0)
		offsets = append(offsets, core.ZoneOffset{SinceUnixMs: uint64(since), ShownMs: uint64(shown)})
		_, end := at.ZoneBounds()
		if end.IsZero() || end.After(now) {
			return offsets, nil
		}
		at = end
	}
}
