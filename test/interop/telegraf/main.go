// Writes batches of metrics through Telegraf's own PostgreSQL output until each is taken, as Telegraf does: `URL BATCHES FIRST`.
// Prints the number of each batch that was taken. Run by telegraf_kills.py.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/influxdata/telegraf"
	"github.com/influxdata/telegraf/config"
	"github.com/influxdata/telegraf/metric"
	"github.com/influxdata/telegraf/plugins/outputs"
	"github.com/influxdata/telegraf/plugins/outputs/postgresql"
)

func open() *postgresql.Postgresql {
	out := outputs.Outputs["postgresql"]().(*postgresql.Postgresql)
	out.Connection = config.NewSecret([]byte(os.Args[1]))
	out.TimestampColumnName = "time"
	out.TimestampColumnType = "timestamp without time zone"
	if err := out.Init(); err != nil {
		panic(err)
	}
	for {
		if err := out.Connect(); err == nil {
			return out
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func main() {
	batches, _ := strconv.Atoi(os.Args[2])
	first, _ := strconv.Atoi(os.Args[3])
	out := open()
	base := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for b := first; b < batches; b++ {
		var metrics []telegraf.Metric
		for i := 0; i < 40; i++ {
			name := []string{"cpu", "mem", "disk", "net_" + strconv.Itoa(b/10)}[i%4]
			fields := map[string]interface{}{"batch": int64(b), "row": int64(i), "f_" + strconv.Itoa(b/3): float64(b)}
			tags := map[string]string{"host": "h" + strconv.Itoa(i%3), "t_" + strconv.Itoa(b/5): "x"}
			metrics = append(metrics, metric.New(name, tags, fields, base.Add(time.Duration(b*1000+i)*time.Millisecond)))
		}
		for {
			err := out.Write(metrics)
			if err == nil {
				break
			}
			fmt.Fprintln(os.Stderr, "again", b, err)
			time.Sleep(50 * time.Millisecond)
		}
		fmt.Println(b)
	}
	out.Close()
}
