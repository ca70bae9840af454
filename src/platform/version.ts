import manifest from '../../package.json' with { type: 'json' };

/** The bundler puts the revision in. */
declare const __REVISION__: string | undefined;

export const VERSION: string = manifest.version;
export const REVISION: string = typeof __REVISION__ === 'string' ? __REVISION__ : 'unknown';
