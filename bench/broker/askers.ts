/**
 * Who asks for tokens: a process of its own, so that it can be pinned. Its settings are a file of JSON, its figures a line on
 * standard output.
 *
 * At a fixed rate, requests become due by the clock whether or not earlier ones have been answered, and count from when they were
 * due, the connection's making included (no coordinated omission).
 */

import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface Form {
  readonly body: string;
  /** The field of a client that proves itself by it. */
  readonly authorization?: string;
}

export interface AskerSettings {
  readonly port: number;
  /** PEM of who signed the server's certificate, and its name; absent without TLS. */
  readonly tls?: { readonly ca: string; readonly name: string };
  readonly path: string;
  /** What is sent, in turn. */
  readonly forms: readonly Form[];
  readonly connections: number;
  /** Whether a connection carries one request after another. */
  readonly keepAlive: boolean;
  readonly load: /** As fast as they are answered. */
    | { readonly kind: 'closed'; readonly seconds: number }
    /** Each form once, as fast as they are answered. */
    | { readonly kind: 'once' }
    | { readonly kind: 'rate'; readonly perSecond: number; readonly seconds: number };
}

export interface AskerFigures {
  readonly answers: number;
  /** Answers other than 200, and connections that broke. */
  readonly failed: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Warming up at a fixed rate: what falls due in this time is sent, but not counted. */
const SETTLE_MS = 1000;
const ANSWER_BOUND_MS = 10_000;

const settings: AskerSettings = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const { port, tls, path, forms, keepAlive, load } = settings;
const requests = forms.map(({ body, authorization }) =>
  Buffer.from(
    [
      `POST ${path} HTTP/1.1`,
      `host: ${tls?.name ?? '127.0.0.1'}:${port}`,
      'content-type: application/x-www-form-urlencoded',
      'accept: application/json',
      'user-agent: token-sidecar/bench',
      ...(authorization === undefined ? [] : [`authorization: ${authorization}`]),
      `content-length: ${Buffer.byteLength(body)}`,
      ...(keepAlive ? [] : ['connection: close']),
      '',
      body,
    ].join('\r\n'),
  ),
);

const idle: Socket[] = [];
const latenciesMs: number[] = [];
let answers = 0;
let failed = 0;
let next = 0;

function open(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // The server's certificate is verified; sessions are not resumed, as a pod that has just started has none.
    const socket =
      tls === undefined
        ? connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
        : connectTls({ port, host: '127.0.0.1', ca: tls.ca, servername: tls.name }, () => resolve(socket));
    socket.once('error', reject);
    socket.setTimeout(ANSWER_BOUND_MS, () => socket.destroy(new Error('no answer in time')));
  });
}

/** Resolves to the status of the answer, once it is whole. */
function exchange(socket: Socket, request: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    let whole = Number.POSITIVE_INFINITY;
    const take = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      if (whole === Number.POSITIVE_INFINITY) {
        const end = text.indexOf('\r\n\r\n');
        if (end < 0) return;
        const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
        if (length === undefined) {
          leave();
          reject(new Error('an answer without a length'));
          return;
        }
        whole = end + 4 + Number(length);
      }
      if (text.length < whole) return;
      leave();
      resolve(Number(text.slice(9, 12)));
    };
    const fail = (): void => {
      leave();
      reject(new Error('the connection ended'));
    };
    function leave(): void {
      socket.off('data', take);
      socket.off('close', fail);
    }
    socket.on('data', take);
    socket.once('close', fail);
    socket.write(request);
  });
}

async function ask(): Promise<boolean> {
  const request = requests[next++ % requests.length] as Buffer;
  let socket: Socket | undefined;
  try {
    socket = idle.pop();
    if (socket === undefined || socket.destroyed) {
      socket = await open();
      // What breaks it later is seen by who waits for an answer.
      socket.on('error', () => undefined);
    }
    const status = await exchange(socket, request);
    if (keepAlive) idle.push(socket);
    else socket.destroy();
    return status === 200;
  } catch {
    socket?.destroy();
    return false;
  }
}

async function one(): Promise<void> {
  if (await ask()) answers += 1;
  else failed += 1;
}

async function inTurns(goesOn: () => boolean): Promise<void> {
  const work = async (): Promise<void> => {
    while (goesOn()) await one();
  };
  await Promise.all(Array.from({ length: settings.connections }, work));
}

async function atRate(perSecond: number, seconds: number): Promise<void> {
  const total = Math.round((seconds + SETTLE_MS / 1000) * perSecond);
  const beganAtMs = performance.now();
  const underWay = new Set<Promise<void>>();
  let sent = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const nowMs = performance.now();
      const due = Math.min(total, Math.floor(((nowMs - beganAtMs) * perSecond) / 1000));
      for (; sent < due; sent++) {
        const isCounted = nowMs - beganAtMs >= SETTLE_MS;
        const work = ask().then((succeeded) => {
          if (!isCounted) return;
          latenciesMs.push(performance.now() - nowMs);
          if (succeeded) answers += 1;
          else failed += 1;
        });
        underWay.add(work);
        void work.finally(() => underWay.delete(work));
      }
      if (sent === total) {
        clearInterval(timer);
        resolve();
      }
    }, 1);
  });
  await Promise.all(underWay);
}

const beganAtMs = performance.now();
if (load.kind === 'rate') await atRate(load.perSecond, load.seconds);
else if (load.kind === 'closed') await inTurns(() => performance.now() - beganAtMs < load.seconds * 1000);
else await inTurns(() => next < requests.length);
const sorted = latenciesMs.toSorted((a, b) => a - b);
const quantile = (part: number): number => sorted[Math.floor(part * (sorted.length - 1))] ?? Number.NaN;
const figures: AskerFigures = {
  answers,
  failed,
  seconds: (performance.now() - beganAtMs) / 1000,
  p50Ms: quantile(0.5),
  p99Ms: quantile(0.99),
};
process.stdout.write(JSON.stringify(figures), () => process.exit());
