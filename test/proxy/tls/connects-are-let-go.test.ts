/** An intercepted connection may live for hours; the CONNECT that it began with, and its head of tens of kilobytes, do not. */

import { queryObjects } from 'node:v8';
import { expect, it } from 'vitest';
import { Transaction } from '../../../src/proxy/transaction/transaction.ts';
import { message } from '../../wire/messages.ts';
import { HOST, intercepting, startTlsUpstream } from './intercepting.ts';

it('a connection with intercepted TLS does not keep its CONNECT in memory', async () => {
  const upstream = await startTlsUpstream('http1');
  const { secured } = await intercepting(upstream);
  const count = (): number => queryObjects(Transaction) as number;
  const client = await secured();
  await expect.poll(count).toBe(0);
  // It was let go, and not ended.
  const asked = message('GET / HTTP/1.1', [`Host: ${HOST}:${upstream.port}`]);
  expect((await client.send(asked).response()).status).toBe(200);
});
