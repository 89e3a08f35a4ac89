// Modzip writes a version of a module as a proxy of Go serves it: modzip MODULE VERSION FOLDER PROXY.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: modzip MODULE VERSION FOLDER PROXY")
	}
	if err := write(module.Version{Path: os.Args[1], Version: os.Args[2]}, os.Args[3], os.Args[4]); err != nil {
		log.Fatal(err)
	}
}

func write(of module.Version, folder, proxy string) error {
	path, err := module.EscapePath(of.Path)
	if err != nil {
		return err
	}
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list": of.Version + "\n", of.Version + ".mod": string(manifest), of.Version + ".info": fmt.Sprintf(`{"Version":%q}`, of.Version),
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(at, of.Version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromDir(file, of, folder); err != nil {
		return err
	}
	return file.Close()
}
