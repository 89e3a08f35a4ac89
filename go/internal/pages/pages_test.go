// Package pages runs docs/start-go.md as its readers do: it saves each program, and types each command.
package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"code.invalid/leasehold/go/internal/testserver"
)

const (
	page   = "../../../docs/start-go.md"
	module = "../.."
	// checkout is where the page has the module.
	checkout = "../leasehold/go"
	// store is the url in the programs, which run on a server of the test.
	store = "redis://localhost"
)

// block is a part of the page, with the comment before it.
var block = regexp.MustCompile("(?s)(<!-- [^\n]* -->\n)?```(go|console)\n(.*?)```")

func TestThePageRunsAsItIsWritten(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Skip("only a checkout has the page")
	}
	redis := testserver.StartRedis(t)
	folder := t.TempDir()
	root, err := filepath.Abs(module)
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(folder, "example")
	if err := os.Mkdir(here, 0o755); err != nil {
		t.Fatal(err)
	}
	programs, commands := 0, 0
	for _, found := range block.FindAllStringSubmatch(string(text), -1) {
		mark, language, code := found[1], found[2], found[3]
		name := regexp.MustCompile(`^// (\w+\.go)\n`).FindStringSubmatch(code)
		switch {
		case mark != "":
		case language == "go" && name != nil:
			programs++
			code = strings.ReplaceAll(code, store, redis.URL)
			if err := os.WriteFile(filepath.Join(here, name[1]), []byte(code), 0o644); err != nil {
				t.Fatal(err)
			}
		case language == "go":
			t.Errorf("a program without a name:\n%s", code)
		default:
			// By its own path, the module has been built already.
			commands += run(t, here, strings.ReplaceAll(code, checkout, root))
		}
	}
	if programs < 6 || commands < 9 {
		t.Errorf("only %d programs and %d commands", programs, commands)
	}
}

// run types the commands of a console, and compares what they print.
func run(t *testing.T, folder, console string) int {
	t.Helper()
	typed := strings.Split("\n"+console, "\n$ ")[1:]
	for _, one := range typed {
		line, want, _ := strings.Cut(one, "\n")
		command := exec.Command("bash", "-c", line)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOTOOLCHAIN=local")
		var errors strings.Builder
		command.Stderr = &errors
		output, err := command.Output()
		if err != nil || !fits(want, string(output)) {
			t.Fatalf("$ %s\n%s%s(%v)\nand the page says\n%s", line, output, errors.String(), err, want)
		}
	}
	return len(typed)
}

// fits tells if a text is what a page says, where `...` stands for anything in a line.
func fits(want, text string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), `\.\.\.`, ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(strings.TrimSpace(text))
}
