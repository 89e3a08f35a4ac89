package leasehold

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"code.invalid/leasehold/go/internal/core"
)

// shared is what all hosts of the protocol agree on: bindings/occurrences.json.
type shared struct {
	Zones []struct {
		Why, Zone string
		UnixMs    uint64 `json:"unix_ms"`
		Offsets   [][2]int64
	}
	Plans []struct {
		Why        string
		UnixMs     uint64 `json:"unix_ms"`
		Occurrence struct {
			Key, At, TZ, Cron             *string
			Every, Offset, Cooldown, Keep *int64
		}
		Quorum            bool
		EvenIfDone        bool `json:"even_if_done"`
		Resource, Refused string
		Keep              uint64
	}
}

func readShared(t *testing.T) (made shared) {
	t.Helper()
	text, err := os.ReadFile("../bindings/occurrences.json")
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil || len(made.Zones) == 0 || len(made.Plans) == 0 {
		t.Fatal(err)
	}
	return made
}

func TestZonesHaveTheOffsetsOfAllHosts(t *testing.T) {
	for _, want := range readShared(t).Zones {
		offsets, err := zoneOffsets(&want.Zone, want.UnixMs)
		if err != nil {
			t.Error(want.Why, err)
		}
		var got [][2]int64
		for _, offset := range offsets {
			got = append(got, [2]int64{int64(offset.SinceUnixMs), int64(offset.ShownMs - offset.SinceUnixMs)})
		}
		if len(got) != len(want.Offsets) {
			t.Errorf("%s: %v", want.Why, got)
			continue
		}
		for n := range got {
			if got[n] != want.Offsets[n] {
				t.Errorf("%s: %v", want.Why, got)
			}
		}
	}
}

func TestSettingsMeanWhatTheyMeanInAllHosts(t *testing.T) {
	protocol := core.New()
	length := func(ms *int64) *time.Duration {
		if ms == nil {
			return nil
		}
		length := time.Duration(*ms) * time.Millisecond
		return &length
	}
	for _, want := range readShared(t).Plans {
		said := want.Occurrence
		set := settings{
			at: said.At, tz: said.TZ, cron: said.Cron, evenIfDone: want.EvenIfDone,
			every: length(said.Every), offset: length(said.Offset), cooldown: length(said.Cooldown), keep: length(said.Keep),
		}
		of, err := set.occurrence(value(said.Key))
		if err != nil {
			t.Fatal(want.Why, err)
		}
		// What is empty here is a key that was not set, which the others tell from none.
		of.Key = said.Key
		var plan core.RunPlan
		offsets, err := zoneOffsets(of.Tz, want.UnixMs)
		if err == nil {
			plan, err = protocol.RunsPlanRun("job", of, want.UnixMs, offsets, want.Quorum, want.EvenIfDone)
		}
		switch {
		case want.Refused != "":
			if err = refused("job", err); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want.Refused) {
				t.Errorf("%s: %+v, %v", want.Why, plan, err)
			}
		case err != nil || plan != (core.RunPlan{Resource: want.Resource, KeepMs: want.Keep}):
			t.Errorf("%s: %+v, %v", want.Why, plan, err)
		}
	}
}
