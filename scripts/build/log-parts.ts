import type { Plugin } from 'rolldown';

/** As files of pino import them. */
const UNUSED = new Set(['sonic-boom', './transport', './lib/transport', './lib/multistream']);

const NOTHING = '\0unused-part-of-pino';

/**
 * Leaves out pino's own outputs, since src/platform/log has one that it always passes: 30 KB that a sidecar would load, with Node's
 * worker threads and assertions.
 */
export function logWithoutOutputs(): Plugin {
  return {
    name: 'log-without-outputs',
    resolveId(source, importer) {
      return importer?.includes('/node_modules/pino/') === true && UNUSED.has(source) ? NOTHING : null;
    },
    load(id) {
      if (id !== NOTHING) return null;
      // A class: pino asks whether something is one of it. Called, it throws.
      return `module.exports = class { constructor() { throw new Error('this output of pino is not in the bundle'); } };`;
    },
  };
}
