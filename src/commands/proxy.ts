import { loadConfig } from '../config/load.ts';
import { PROXY_SETTINGS } from '../config/proxy-settings.ts';
import { readSettings } from '../config/settings.ts';
import { createLogger } from '../log.ts';
import type { Command } from './command.ts';
import { whenAborted } from './shutdown.ts';
import { startSidecar } from './sidecar.ts';
import { keepHeapSmall } from './small-heap.ts';

export const proxy: Command = {
  summary: 'Run the sidecar: obtain, renew and inject tokens (the default command)',
  settings: PROXY_SETTINGS,
  async run({ args, env, logOutput, shutdown }) {
    const { given } = readSettings(PROXY_SETTINGS, args, env);
    const config = await loadConfig(given);
    const log = createLogger(config.logLevel, logOutput);
    const sidecar = await startSidecar({
      config,
      log,
      logLosses: logOutput.losses,
      quit: () => shutdown.request(),
    });
    keepHeapSmall();
    await whenAborted(shutdown.signal);
    await sidecar.stop();
    return 0;
  },
};
