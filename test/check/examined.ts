import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { CheckContext, Finding } from '../../src/check/check-context.ts';
import { systemClock } from '../../src/platform/time/clock.ts';

/** The system's clock, and no end of time. */
export function examination(settings: Partial<CheckContext> = {}): CheckContext {
  return { clock: systemClock, signal: new AbortController().signal, isOffline: false, ...settings };
}

/** A provider or upstream that answers once it has the whole request; gone after the test. */
export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => listener(request, response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** `FAIL what: detail → remedy`, a line each. */
export function lines(findings: readonly Finding[]): string[] {
  return findings.map((finding) => {
    const row = `${finding.verdict} ${finding.what}: ${finding.detail}`;
    return finding.verdict === 'ok' ? row : `${row} → ${finding.remedy}`;
  });
}

/** What is printed below the heading of a credential or route. */
export function below(heading: string, printed: string): string {
  return printed.split('\n\n').find((part) => part.startsWith(`${heading}\n`)) ?? '';
}
