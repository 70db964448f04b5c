// An example dashboard over the sample data, which users may copy and change.

import { type Dashboard, dashboardFrom } from '../../common/dashboards.js'

export const exampleName = 'Cold rooms'

export function exampleDashboard(): Dashboard {
  const where = 'WHERE room IN (@room) AND ts >= @from AND ts < @to'
  return dashboardFrom({
    range: '2026-03-02/2026-03-09',
    variables: [{ name: 'room', kind: 'query', several: true, sql: 'SELECT DISTINCT room FROM sensors ORDER BY room' }],
    panels: [
      {
        ...{ title: 'Warmest now', kind: 'value', unit: '°C' },
        sql: `SELECT max(temperature) AS temperature, room FROM (readings LATEST ON ts PARTITION BY sensor)\nWHERE room IN (@room)\nORDER BY 1 DESC LIMIT 1`,
      },
      {
        ...{ title: 'Rows', kind: 'value' },
        sql: `SELECT count() AS rows FROM readings ${where}`,
      },
      {
        ...{ title: 'Silent sensors', kind: 'value' },
        sql: "SELECT count() AS silent FROM (readings LATEST ON ts PARTITION BY sensor)\nWHERE ts < dateadd('h', -1, @to)",
      },
      {
        ...{ title: 'Temperature', kind: 'chart', width: 'full', height: 'medium' },
        sql: `SELECT ts, room, avg(temperature) AS temperature FROM readings\n${where}\nSAMPLE BY @interval`,
      },
      {
        ...{ title: 'Humidity', kind: 'chart', style: 'heat', width: 'half', height: 'medium' },
        sql: `SELECT ts, sensor, avg(humidity) AS humidity FROM readings\n${where}\nSAMPLE BY @interval`,
      },
      {
        ...{ title: 'Extremes', kind: 'rows', width: 'half', height: 'medium' },
        sql: `SELECT room, min(temperature), max(temperature), max(ts) AS newest FROM readings\n${where}\nORDER BY room`,
      },
    ],
  })
}
