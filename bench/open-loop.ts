/**
 * A client at a fixed rate, run as a process of its own by latency.ts.
 *
 * Requests become due by the clock whether or not earlier ones have been answered, and a request's latency counts from
 * when it was due, time spent waiting for a free connection included: a proxy that stalls delays nothing but its own
 * answers, and all those delays are seen (no coordinated omission). A request is due at the timer tick, a millisecond
 * or so apart, at which its turn has come: this process's own lateness is nobody's latency.
 */

import { connect, type Socket } from 'node:net';

export interface OpenLoopSettings {
  readonly port: number;
  readonly path: string;
  readonly uploadBytes: number;
  readonly perSecond: number;
  readonly connections: number;
  readonly keepAlive: boolean;
  readonly seconds: number;
}

export interface OpenLoopFigures {
  readonly p50Us: number;
  readonly p99Us: number;
  readonly samples: number;
  /** Answers other than 200, and connections that broke. */
  readonly failed: number;
}

/** Connecting and warming up: what falls due in this time is sent, but not counted. */
const SETTLE_MS = 500;
const ANSWER_BOUND_MS = 5000;

interface Connection {
  readonly socket: Socket;
  dueAtMs: number;
  /** Bytes of the answer still to come; unknown until its head is there. */
  remaining: number | undefined;
  head: string;
}

const settings: OpenLoopSettings = JSON.parse(process.argv[2] ?? '');
const { port, path, uploadBytes, perSecond, keepAlive } = settings;
const request = Buffer.from(
  [
    `${uploadBytes > 0 ? 'POST' : 'GET'} ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    ...(uploadBytes > 0 ? [`content-length: ${uploadBytes}`] : []),
    ...(keepAlive ? [] : ['connection: close']),
    '',
    'x'.repeat(uploadBytes),
  ].join('\r\n'),
);

const latenciesUs: number[] = [];
const idle: Connection[] = [];
/** Instants at which requests became due that no connection was free for, oldest first. */
const waiting: number[] = [];
let open = 0;
let failed = 0;
let sent = 0;
let answered = 0;

const beganAtMs = performance.now();
const countedFromMs = beganAtMs + SETTLE_MS;
const total = Math.round((settings.seconds + SETTLE_MS / 1000) * perSecond);

if (keepAlive) for (let count = 0; count < settings.connections; count++) idle.push(openConnection());
const timer = setInterval(tick, 1);
setTimeout(report, SETTLE_MS + settings.seconds * 1000 + ANSWER_BOUND_MS).unref();

function tick(): void {
  const nowMs = performance.now();
  const due = Math.min(total, Math.floor(((nowMs - beganAtMs) * perSecond) / 1000));
  for (; sent < due; sent++) send(nowMs);
  if (sent === total) clearInterval(timer);
}

function send(dueAtMs: number): void {
  const connection = idle.pop() ?? (open < settings.connections ? openConnection() : undefined);
  if (connection === undefined) {
    waiting.push(dueAtMs);
    return;
  }
  connection.dueAtMs = dueAtMs;
  connection.remaining = undefined;
  connection.head = '';
  connection.socket.write(request);
}

function openConnection(): Connection {
  open += 1;
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const connection: Connection = { socket, dueAtMs: 0, remaining: undefined, head: '' };
  socket.on('data', (chunk) => receive(connection, chunk as Buffer));
  socket.once('error', () => undefined);
  socket.once('close', () => {
    open -= 1;
    const index = idle.indexOf(connection);
    if (index >= 0) idle.splice(index, 1);
    if (connection.dueAtMs > 0) finish(connection, false);
    sendWaiting();
  });
  return connection;
}

function receive(connection: Connection, chunk: Buffer): void {
  if (connection.remaining === undefined) {
    connection.head += chunk.toString('latin1');
    const end = connection.head.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = /\r\ncontent-length: *(\d+)/i.exec(connection.head)?.[1];
    if (length === undefined || !connection.head.startsWith('HTTP/1.1 200 ')) {
      connection.socket.destroy();
      return;
    }
    connection.remaining = Number(length) - (connection.head.length - end - 4);
  } else connection.remaining -= chunk.length;
  if (connection.remaining === 0) finish(connection, true);
}

function finish(connection: Connection, succeeded: boolean): void {
  const { dueAtMs } = connection;
  connection.dueAtMs = 0;
  answered += 1;
  if (!succeeded) failed += 1;
  else if (dueAtMs >= countedFromMs) latenciesUs.push((performance.now() - dueAtMs) * 1000);
  if (answered === total) report();
  if (!succeeded) return;
  if (keepAlive) {
    idle.push(connection);
    sendWaiting();
  } else connection.socket.destroySoon();
}

function sendWaiting(): void {
  const next = waiting.shift();
  if (next !== undefined) send(next);
}

function report(): never {
  const sorted = latenciesUs.toSorted((a, b) => a - b);
  const percentile = (part: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  const figures: OpenLoopFigures = {
    p50Us: Math.round(percentile(0.5)),
    p99Us: Math.round(percentile(0.99)),
    samples: sorted.length,
    failed: failed + total - answered,
  };
  process.stdout.write(JSON.stringify(figures));
  process.exit();
}
