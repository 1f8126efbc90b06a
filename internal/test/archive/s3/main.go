// Command s3 is rclone's S3 server with a folder behind it.
package main

import (
	_ "github.com/rclone/rclone/backend/local" // the folder
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/serve/s3" // rclone serve s3
)

func main() { cmd.Main() }
