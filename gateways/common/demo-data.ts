// Data of `penstock demo`: one week of a food wholesaler's cold rooms in three related tables. Every run produces the
// same rows, because documented results depend on them.
//
//   sensors    8 rows       one per sensor: its room and the highest temperature that is allowed there
//   readings   15,968 rows  one per sensor and 5 minutes
//   doors      587 rows     one per opening of a room's door
//
// The readings have what real ones have:
//   - f2a, f2b   the compressor of freezer 2 fails on Thursday from 02:00 to 06:00
//   - c1b        sends nothing on Tuesday from 13:00 to 18:40: these readings are lost
//   - d1a        is offline from Friday 20:00 to Saturday 07:15 and then delivers what it stored: late rows
//   - d1b        reports 85 degrees three times, as this kind of sensor does after a reset
//   - c1a        falls silent on Sunday at 16:20
//   - f1a, f1b, f2a, f2b measure no humidity: NULL

const second = 1_000_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** Monday, 2 March 2026, in microseconds. */
const begin = 1_772_409_600 * second
const end = begin + 7 * day
const interval = 5 * minute

interface Room {
  readonly base: number
  /** Amplitude of the daily cycle. */
  readonly daily: number
  /** Degrees for each minute that the door is open. */
  readonly perDoorMinute: number
  readonly humidity: number | null
  /** Openings of the door in an hour of work. */
  readonly openings: number
}

const rooms = {
  'freezer-1': { base: -21, daily: 0.2, perDoorMinute: 1.1, humidity: null, openings: 0.9 },
  'freezer-2': { base: -20.5, daily: 0.2, perDoorMinute: 1.1, humidity: null, openings: 0.7 },
  'chiller-1': { base: 3.4, daily: 0.3, perDoorMinute: 0.7, humidity: 78, openings: 2 },
  'dock-1': { base: 9, daily: 3.2, perDoorMinute: 0.5, humidity: 64, openings: 3 },
} as const satisfies Record<string, Room>

type RoomName = keyof typeof rooms

interface Sensor {
  readonly name: string
  readonly room: RoomName
  readonly model: string
  readonly maxTemperature: number
  /** Time of its readings within the interval of five minutes. */
  readonly phase: number
  /** Calibration error in degrees. */
  readonly offset: number
}

const sensors: readonly Sensor[] = [
  sensor('f1a', 'freezer-1', 'T10', -18, 4, 0.1),
  sensor('f1b', 'freezer-1', 'T10', -18, 11, -0.2),
  sensor('f2a', 'freezer-2', 'T10', -18, 19, 0),
  sensor('f2b', 'freezer-2', 'T10', -18, 26, 0.3),
  sensor('c1a', 'chiller-1', 'TH20', 5, 33, 0),
  sensor('c1b', 'chiller-1', 'TH20', 5, 41, 0.2),
  sensor('d1a', 'dock-1', 'TH20', 15, 48, -0.1),
  sensor('d1b', 'dock-1', 'TH10', 15, 55, 0.4),
]

function sensor(
  name: string,
  room: RoomName,
  model: string,
  maxTemperature: number,
  phase: number,
  offset: number,
): Sensor {
  return { name, room, model, maxTemperature, phase: phase * second, offset }
}

/** Statements that create the tables, in the order in which they are created. */
export const demoTables: Readonly<Record<string, string>> = {
  sensors: `CREATE TABLE sensors (
  sensor SYMBOL, room SYMBOL, model SYMBOL, max_temperature DOUBLE
)`,
  readings: `CREATE TABLE readings (
  ts TIMESTAMP, sensor SYMBOL, room SYMBOL, temperature DOUBLE, humidity DOUBLE, battery DOUBLE, received TIMESTAMP
) TIMESTAMP(ts) PARTITION BY DAY DEDUP UPSERT KEYS(ts, sensor)`,
  doors: `CREATE TABLE doors (
  ts TIMESTAMP, room SYMBOL, seconds LONG
) TIMESTAMP(ts) PARTITION BY DAY DEDUP UPSERT KEYS(ts, room)`,
}

export function sensorsInsert(): string {
  const rows = sensors.map(
    ({ name, room, model, maxTemperature }) => `('${name}', '${room}', '${model}', ${maxTemperature})`,
  )
  return `INSERT INTO sensors VALUES ${rows.join(', ')}`
}

interface Opening {
  readonly at: number
  readonly seconds: number
}

/** Rows of doors and readings as line protocol, in the order in which a server would have received them. */
export function demoLines(): string {
  const random = randomNumbers(20260302)
  const openings = new Map<string, readonly Opening[]>(
    Object.entries(rooms).map(([name, room]) => [name, openingsOf(room, random)]),
  )
  const lines: { readonly received: number; readonly line: string }[] = []
  for (const [room, list] of openings)
    for (const { at, seconds } of list)
      lines.push({ received: at, line: `doors,room=${room} seconds=${seconds}i ${at}000` })
  for (const each of sensors) lines.push(...readingsOf(each, openings.get(each.room) ?? [], random))
  lines.sort((a, b) => a.received - b.received)
  return lines.map(({ line }) => `${line}\n`).join('')
}

/** Doors open between 05:00 and 19:00, on Sunday only in the morning. */
function openingsOf({ openings }: Room, random: () => number): Opening[] {
  const found: Opening[] = []
  const mean = hour / openings
  for (let at = begin; ; ) {
    at += Math.round((mean * (0.3 + 1.4 * random())) / second) * second
    if (at >= end) return found
    const [dayIndex, hourOfDay] = [Math.floor((at - begin) / day), Math.floor(((at - begin) % day) / hour)]
    if (hourOfDay < 5 || hourOfDay >= (dayIndex === 6 ? 11 : 19)) continue
    found.push({ at, seconds: Math.round(15 + 150 * random() * random()) })
  }
}

function readingsOf(
  sensor: Sensor,
  openings: readonly Opening[],
  random: () => number,
): { received: number; line: string }[] {
  const found: { received: number; line: string }[] = []
  const room: Room = rooms[sensor.room]
  for (let n = 0; n < (end - begin) / interval; n++) {
    const at = begin + n * interval + sensor.phase
    // The same numbers are drawn for every reading, so that a gap changes no other value.
    const noise = [random() + random() - 1, random() + random() - 1, random()] as const
    if (isLost(sensor.name, at)) continue
    const temperature = resetAt(sensor.name, at) ? 85 : temperatureAt(sensor, room, openings, at) + 0.35 * noise[0]
    const received = receivedAt(sensor.name, at, noise[2])
    const battery =
      3.62 - (0.16 * (at - begin)) / (7 * day) - (sensor.name === 'c1a' ? (0.5 * (at - begin)) / (7 * day) : 0)
    const humidity =
      room.humidity === null
        ? ''
        : `humidity=${(room.humidity + 0.8 * (temperature - room.base) + 2 * noise[1]).toFixed(1)},`
    const fields = `temperature=${temperature.toFixed(2)},${humidity}battery=${battery.toFixed(2)},received=${received}t`
    found.push({ received, line: `readings,sensor=${sensor.name},room=${sensor.room} ${fields} ${at}000` })
  }
  return found
}

function isLost(name: string, at: number): boolean {
  if (name === 'c1b') return at >= moment(1, 13, 0) && at < moment(1, 18, 40)
  return name === 'c1a' && at >= moment(6, 16, 20)
}

function receivedAt(name: string, at: number, random: number): number {
  const soon = at + Math.round(random * 2 * second) + second
  const [from, to] = [moment(4, 20, 0), moment(5, 7, 15)]
  if (name !== 'd1a' || at < from || at >= to) return soon
  return to + Math.round((at - from) / 1000)
}

/** Whether d1b has just been reset. */
function resetAt(name: string, at: number): boolean {
  const resets = [moment(0, 9, 10), moment(2, 15, 30), moment(5, 6, 45)]
  return name === 'd1b' && resets.some((from) => at >= from && at < from + interval)
}

function temperatureAt(sensor: Sensor, room: Room, openings: readonly Opening[], at: number): number {
  const warmest = Math.cos(((at - moment(0, 15, 0)) / day) * 2 * Math.PI)
  let temperature = room.base + sensor.offset + room.daily * warmest
  for (const { at: opened, seconds } of openings) {
    const since = at - opened
    if (since < 0 || since > 2 * hour) continue
    temperature +=
      room.perDoorMinute * (seconds / 60) * Math.min(1, since / (4 * minute)) * Math.exp(-since / (18 * minute))
  }
  return temperature + failureAt(sensor.room, at)
}

/** Degrees that the failed compressor adds: rising for four hours, then falling. */
function failureAt(room: string, at: number): number {
  const [from, to] = [moment(3, 2, 0), moment(3, 6, 0)]
  if (room !== 'freezer-2' || at < from) return 0
  const rise = (hours: number): number => 12 * (1 - Math.exp(-hours / 3))
  return at < to ? rise((at - from) / hour) : rise(4) * Math.exp(-(at - to) / (1.5 * hour))
}

function moment(dayIndex: number, hours: number, minutes: number): number {
  return begin + dayIndex * day + hours * hour + minutes * minute
}

/** Pseudo-random numbers from 0 to 1, the same for the same seed (Mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
