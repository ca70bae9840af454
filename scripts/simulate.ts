/**
 * What fleets ask of one provider, by the engine's own code over simulated time: prints the tables of docs/capacity.md.
 *
 *     npm run simulate                                         # each sidecar asks by itself
 *     npm run simulate -- --broker                             # by way of a broker, beside it
 *       [--replicas 2] [--credentials 10] [--pods 10000,100000] [--minutes 1,2,5,10,30]
 */

import { parseArgs } from 'node:util';
import { simulateBroker } from './simulation/broker/tables.ts';
import { simulateOwnSidecars } from './simulation/own-sidecars.ts';

const { values } = parseArgs({
  options: {
    broker: { type: 'boolean', default: false },
    replicas: { type: 'string', default: '2' },
    credentials: { type: 'string', default: '10' },
    pods: { type: 'string', default: '10000,100000' },
    minutes: { type: 'string', default: '1,2,5,10,30' },
  },
});

function wholeNumber(flag: string, text: string, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= 1 && value <= most)) {
    throw new Error(`--${flag} is ${JSON.stringify(text)}; it must be a whole number from 1 to ${most}`);
  }
  return value;
}

function wholeNumbers(flag: string, text: string, most: number): readonly number[] {
  return text.split(',').map((one) => wholeNumber(flag, one, most));
}

if (values.broker) {
  await simulateBroker({
    replicas: wholeNumber('replicas', values.replicas, 100),
    credentials: wholeNumber('credentials', values.credentials, 100),
    fleets: wholeNumbers('pods', values.pods, 1_000_000),
    outageMinutes: wholeNumbers('minutes', values.minutes, 60),
  });
} else {
  await simulateOwnSidecars();
}
