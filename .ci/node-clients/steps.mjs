// Runs steps one after the other. It ends with status 1 and says why if one fails.
export async function run(client, steps) {
  for (const [name, step] of Object.entries(steps)) {
    await step().catch((e) => {
      console.error(`${client}, ${name}:`, e);
      process.exit(1);
    });
    console.log(`${client}, ${name}: as it should be`);
  }
}

export const words = (text) => text.split(' ').filter(Boolean).length;
