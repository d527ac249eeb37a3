/** The page: https://preactjs.com draws, the API of the server that serves it gives the data. */
import { render } from "preact";
import { App } from "./app.tsx";
import "./style/base.css";
import "./style/frame.css";
import "./style/controls.css";
import "./style/lists.css";
import "./style/now.css";
import "./style/graph.css";
import "./style/panels.css";
import "./style/dialogs.css";
import "./style/narrow.css";

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
