import { once } from 'node:events';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { onTestFinished, vi } from 'vitest';
import type { Webhook } from '../../src/injector/admission.ts';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import { servingCertificateOf } from '../../src/injector/certificate/stored-certificates.ts';
import { startWebhookListener } from '../../src/injector/webhook-listener.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

const HOST = 'hook';

/** The listener alone, in this process, with webhooks of the test's own. */
export async function listeningWebhook(webhooks: Readonly<Record<string, Webhook>>) {
  const clock = new ManualClock();
  const { log, lines } = captureLog(clock);
  const { ca, ...issued } = await issueCertificate({ hosts: [HOST], nowMs: Date.now(), lifetimeMs: 60_000 });
  const certificate = servingCertificateOf({ ca, ...issued });
  const dropped: string[] = [];
  const stopped = vi.fn();
  const options = {
    listen: { host: '127.0.0.1', port: 0 },
    certificates: { current: () => certificate, onChange: () => stopped, close: async () => undefined },
    webhooks,
    metrics: { connectionDropped: (reason: string) => void dropped.push(reason) },
    clock,
    log,
  };
  const { address, drain } = await startWebhookListener(options);
  onTestFinished(async () => {
    const drained = drain(0, 0);
    await clock.advance(0);
    await clock.advance(0);
    await drained;
  });
  return {
    ...options,
    lines,
    dropped,
    /** Called when the listener lets go of its certificates. */
    stopped,
    port: address.port,
    async open(localAddress = '127.0.0.1'): Promise<TLSSocket> {
      // TLS passes the local address on to TCP, though its type does not say so.
      const connecting: ConnectionOptions & { localAddress: string } = {
        host: '127.0.0.1',
        port: address.port,
        ca,
        servername: HOST,
        localAddress,
      };
      const socket = connect(connecting);
      onTestFinished(() => void socket.destroy());
      await once(socket, 'secureConnect');
      return socket;
    },
  };
}

/** The head of a request for a webhook. */
export function head(path: string, ...fields: readonly string[]): string {
  return `${[`POST ${path} HTTP/1.1`, `host: ${HOST}`, ...fields].join('\r\n')}\r\n\r\n`;
}

export const JSON_TYPE = 'content-type: application/json';

/** Of the next answer: its status, and the head it came with. */
export async function answered(socket: TLSSocket): Promise<{ status: number; text: string }> {
  const [first] = (await once(socket, 'data')) as [Buffer];
  const text = first.toString('latin1');
  return { status: Number(text.slice(9, 12)), text };
}
