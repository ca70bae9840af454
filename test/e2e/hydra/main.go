// Ory Hydra as it is, built from its module.
package main

import "github.com/ory/hydra/v2/cmd"

func main() { cmd.Execute() }
